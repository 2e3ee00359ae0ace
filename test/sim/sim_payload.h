/*
 * sim_payload.h
 *		What the messages of the simulation hold: bytes that tell which message it is and can be checked whole.
 */
#ifndef SIM_PAYLOAD_H
#define SIM_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PAYLOAD_MIN 16

/* Write message `index` of transaction `txn`: len bytes, at least SIM_PAYLOAD_MIN, which zstd can shorten or not. */
extern void sim_payload_put(uint8_t *out, size_t len, uint32_t txn, uint32_t index, bool compressible);

/* Read it back; false = not a byte for byte copy of what sim_payload_put wrote. */
extern bool sim_payload_get(const uint8_t *bytes, size_t len, uint32_t *txn, uint32_t *index);

#endif							/* SIM_PAYLOAD_H */
