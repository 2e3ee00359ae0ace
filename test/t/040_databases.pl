# Queues belong to their database and name roles: what happens to them when these go, also while qlog is not there to see
# it; and that qlog's workers hold up none of it.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.sweep_naptime = '1s'", "qlog.checkpoint_timeout = '200ms'", "statement_timeout = '60s'", 'autovacuum = off' ]);
my $log_directory = $node->data_dir . '/qlog';

# Names of the directories of queues' logs.
sub logs
{
	my @found = map { m{/(q\d+)$} } glob "$log_directory/qlog/q*";

	@found = sort grep { $_ ne 'q0' } @found;
	return @found;
}

sub in_database
{
	my ($database, $sql) = @_;

	return $node->safe_psql($database, $sql);
}

sub make_database
{
	my ($name) = @_;

	$node->sql("create database $name");
	in_database($name, "create extension qlog; select count(queue_push('same', i::text)), count(queue_push('$name', i::text, 'p')) from generate_series(1, 10) i");
	return;
}

$node->sql("select count(queue_push('home', '1'))");
make_database($_) foreach qw(a b c d);
is(scalar(logs()), 9, 'each queue has a log');

# RENAME needs that nobody is connected: no worker of qlog is.  The queues go with the database.
$node->sql('alter database a rename to a2');
is(in_database('a2', "select count(*) from queue_peek('same', batch => 100)"), '10', 'queues follow a database that is renamed');
$node->sql('alter database a2 set tablespace pg_default');
$node->sql('create database copy template a2');
is(in_database('copy', 'select count(*) from qlog_queues'), '0', 'a copy of a database starts without queues');
is(in_database('copy', "select count(queue_push('same', '1')) from qlog_queues"), '0', 'and has its own names');
in_database('copy', "select count(queue_push('same', '1'))");
is(in_database('a2', "select count(*) from queue_peek('same', batch => 100)"), '10', 'apart from those of its template');

# DROP DATABASE takes the queues along, and their files soon after.
$node->sql('drop database a2');
$node->sql('drop database copy');
$node->poll_sql("select count(*) = 7 from pg_ls_dir('qlog/qlog') f where f ~ '^q[1-9]'");
pass('the files of a dropped database go');
my $timer = IPC::Run::timer(60);
my ($in, $out) = ("select pg_backend_pid();\n", '');
my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('b') ], '<', \$in, '>', \$out, '2>', \my $err, $timer);
$session->pump until $out =~ /\d+\n/;
isnt($node->psql('postgres', 'drop database b'), 0, 'a database somebody is connected to stays');
is(in_database('b', "select count(*) from queue_peek('same', batch => 100)"), '10', 'with its queues');
$node->sql('drop database b with (force)');
$session->kill_kill;
$node->poll_sql("select count(*) = 5 from pg_ls_dir('qlog/qlog') f where f ~ '^q[1-9]'");
pass('DROP DATABASE FORCE takes the queues along');
$node->sql('create database b');
in_database('b', 'create extension qlog');
is(in_database('b', 'select count(*) from qlog_queues'), '0', 'a new database of that name has none');

# DROP SCHEMA CASCADE over the extension's schema, and DROP EXTENSION: taken back, then for good.
in_database('c', "create schema s; alter extension qlog set schema s");
in_database('c', 'begin; drop schema s cascade; rollback');
is(in_database('c', 'select count(*) from s.qlog_queues'), '2', 'a rolled back DROP SCHEMA leaves the queues');
in_database('c', 'drop schema s cascade');
$node->poll_sql("select count(*) = 3 from pg_ls_dir('qlog/qlog') f where f ~ '^q[1-9]'");
pass('DROP SCHEMA CASCADE takes them along');
in_database('c', "create extension qlog; begin; select queue_create('new'); drop extension qlog; create extension qlog; select queue_create('new'); commit");
is(in_database('c', 'select string_agg(queue, \',\') from qlog_queues'), 'new', 'DROP EXTENSION drops what its own transaction has made');
in_database('c', 'drop extension qlog');
$node->poll_sql("select count(*) = 3 from pg_ls_dir('qlog/qlog') f where f ~ '^q[1-9]'");

# Where the extension is not installed nothing is different.
$node->sql('create role plain_role; create database plain');
in_database('plain', 'create table t(i int); drop table t; create schema s; create table s.t(i int); drop schema s cascade; drop extension plpgsql');
in_database('plain', 'reassign owned by plain_role to postgres; drop owned by plain_role; drop role plain_role');
$node->sql('drop database plain');
pass('drops of all kinds in a database without the extension');

# While the library is not loaded a database and roles go: nobody tells qlog.
$node->sql(q{create role gone_owner; create role gone_push; create role stays;
	select queue_create('owned', '{"lease": "5 min"}');
	select queue_grant('owned', 'gone_push', 'push'), queue_grant('owned', 'stays', 'pop'), queue_owner('owned', 'gone_owner');
	select queue_create('granted'); select queue_grant('granted', 'gone_push', 'all');
	select count(queue_push('owned', '1'))});
my $before = $node->sql("select queue, options, owner, acl from qlog_queues where queue = 'home'");
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
$node->sql('drop database d');
$node->sql('drop role gone_owner, gone_push');
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'qlog'\n");
$node->start;
$node->poll_sql("select count(*) = 0 from qlog_queues where acl::text ~ '\\d{4,}' or not exists (select from pg_roles where oid = owner)");
is($node->sql("select owner, acl from qlog_queues where queue = 'owned'"), 'postgres|{postgres=arw/postgres,stays=r/postgres}',
	'a queue without owner goes to the bootstrap superuser, what other roles may stays');
is($node->sql("select owner, acl from qlog_queues where queue = 'granted'"), 'postgres|{postgres=arw/postgres}', 'a role that is gone has no privilege any more');
is($node->sql("select options from qlog_queues where queue = 'owned'"), '{"lease": "300 s"}', 'nothing else has changed');
is($node->sql("select count(*) from queue_peek('owned')"), '1', 'messages stay');
$node->poll_sql("select count(*) = 3 from pg_ls_dir('qlog/qlog') f where f ~ '^q[1-9]'");
pass('queues of a database that is gone are dropped');
is($node->sql("select queue, options, owner, acl from qlog_queues where queue = 'home'"), $before, 'others are not touched');
my $text = PostgreSQL::Test::Utils::slurp_file($node->logfile);
like($text, qr/dropped 2 queues of the database with OID/, 'the log says so');
like($text, qr/took the role with OID \d+, which does not exist any more, out of \d+ queue/, 'of roles as well');

# It stays so over a crash, and further scans find nothing to do.
$node->kill9_everything;
$node->start;
is($node->sql("select owner, acl from qlog_queues where queue = 'owned'"), 'postgres|{postgres=arw/postgres,stays=r/postgres}', 'after a crash as well');
my $passes = $node->sql("select passes from qlog_stat_workers where role = 'sweeper'");
$node->poll_sql("select passes > $passes + 2 from qlog_stat_workers where role = 'sweeper'");
my @lines = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ /(does not exist any more)/g;
is(scalar(@lines), 3, 'the sweeper has done each thing once');
is($node->sql('select count(*) from qlog_stat_workers where last_error is not null'), '0', 'no worker complains');

# While qlog is out of service a database can be dropped; its queues go later.
$node->sql('create database e');
in_database('e', "create extension qlog; select count(queue_push('e', '1'))");
$node->stop;
rename("$log_directory/IDENTITY", "$log_directory/IDENTITY.away") or die "rename: $!";
$node->start;
is($node->sqlstate("select queue_push('home', '1')") ne '', 1, 'out of service');
$node->sql('drop database e');
$node->stop;
rename("$log_directory/IDENTITY.away", "$log_directory/IDENTITY") or die "rename: $!";
$node->start;
$node->poll_sql("select count(*) = 3 from pg_ls_dir('qlog/qlog') f where f ~ '^q[1-9]'");
pass('the queues of a database that was dropped meanwhile are dropped');

$node->stop;
done_testing();
