"""
Random numbers within compiled loops.

A stream is numpy's own Philox4x64-10 (Salmon et al. 2011), bit for bit: attempt i on seed s reads what
`Generator(Philox(key=key, counter=[0, i, s, 0])).random()` would return. So no two attempts share a number, a result
depends on neither order nor number of workers, and no Python object is made per fake.
"""

import numpy as np

from elsewhere._jit import njit

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_LOW, _HALF, _ELEVEN = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(11)
_ONE, _FOUR, _SIX = np.uint64(1), np.uint64(4), np.uint64(6)


@njit
def open_stream(key, attempt, row):
    """Return the stream of one attempt on one seed: key (2), counter (4), block (4), numbers used of the block."""
    stream = np.zeros(11, dtype=np.uint64)
    stream[0], stream[1], stream[3], stream[4] = key[0], key[1], attempt, row
    stream[10] = _FOUR
    return stream


@njit
def _high(a, b):
    """Return the upper 64 of the 128 bits of a * b."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a_high * b_low + ((a_low * b_low) >> _HALF)
    return a_high * b_high + (middle >> _HALF) + ((a_low * b_high + (middle & _LOW)) >> _HALF)


@njit
def _next_block(stream):
    # counter word 0 cannot wrap: 2^66 numbers per attempt
    stream[2] += _ONE
    k0, k1 = stream[0], stream[1]
    c0, c1, c2, c3 = stream[2], stream[3], stream[4], stream[5]
    for _ in range(10):
        c0, c1, c2, c3 = _high(_M1, c2) ^ c1 ^ k0, _M1 * c2, _high(_M0, c0) ^ c3 ^ k1, _M0 * c0
        k0 += _W0
        k1 += _W1
    stream[6], stream[7], stream[8], stream[9], stream[10] = c0, c1, c2, c3, np.uint64(0)


@njit
def uniform(stream):
    """Draw one number of [0, 1), 53 bits."""
    if stream[10] == _FOUR:
        _next_block(stream)
    used = stream[10]
    stream[10] = used + _ONE
    return np.float64(stream[_SIX + used] >> _ELEVEN) * (1.0 / 9007199254740992.0)
