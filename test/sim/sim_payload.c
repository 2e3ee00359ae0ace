/*
 * sim_payload.c
 *		Payloads: 16 bytes of head (txn, index, length, kind), then filler that follows from the head.
 */
#include "sim_payload.h"

#include "sim_random.h"

#include <string.h>

#define NOISE UINT32_C(0x80000000)	/* in the length: filler that does not shrink */

static void
put_filler(uint8_t *out, size_t len, uint32_t txn, uint32_t index, bool compressible)
{
	uint64_t	state = (uint64_t) txn << 32 | index;

	for (size_t at = 0; at < len; at += 8)
	{
		uint64_t	word = compressible ? state + at / 256 : sim_random(&state);

		memcpy(out + at, &word, len - at < 8 ? len - at : 8);
	}
}

void
sim_payload_put(uint8_t *out, size_t len, uint32_t txn, uint32_t index, bool compressible)
{
	uint32_t	head[4] = {txn, index, (uint32_t) len | (compressible ? 0 : NOISE), ~(txn ^ index)};

	memcpy(out, head, sizeof(head));
	put_filler(out + sizeof(head), len - sizeof(head), txn, index, compressible);
}

bool
sim_payload_get(const uint8_t *bytes, size_t len, uint32_t *txn, uint32_t *index)
{
	uint32_t	head[4];
	uint64_t	found = 0;
	bool		compressible;
	uint64_t	state;
	size_t		at;

	if (len < SIM_PAYLOAD_MIN)
		return false;
	memcpy(head, bytes, sizeof(head));
	*txn = head[0];
	*index = head[1];
	if ((head[2] & ~NOISE) != len || head[3] != ~(head[0] ^ head[1]))
		return false;
	compressible = (head[2] & NOISE) == 0;
	state = (uint64_t) head[0] << 32 | head[1];
	for (at = 0; at + sizeof(head) < len; at += 8)
	{
		uint64_t	word = compressible ? state + at / 256 : sim_random(&state);
		size_t		left = len - sizeof(head) - at;

		if (left < 8)
			return memcmp(&word, bytes + sizeof(head) + at, left) == 0;
		memcpy(&found, bytes + sizeof(head) + at, 8);
		if (found != word)
			return false;
	}
	return true;
}
