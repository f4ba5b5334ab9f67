"""NumPy's random numbers inside compiled loops.

Every episode has streams of its own, those of `Generator(PCG64(SeedSequence(seed, spawn_key=(episode, which))))`. Making
such a generator in Python costs more than many an episode, so the same arithmetic is done here: `random(stream)` gives, bit
for bit, the numbers that the generator's `random()` gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure.kernels.jit import compiled

#: Which of an episode's streams: what the world draws, what the agent draws.
WORLD, AGENT = 0, 1

POOL = 4
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
# Constants of NumPy's SeedSequence and of the PCG64 generator (XSL-RR 128/64).
INIT_A, MULT_A = np.uint64(0x43B0D7E5), np.uint64(0x931E8875)
INIT_B, MULT_B = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
MIX_LEFT, MIX_RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
XSHIFT = np.uint64(16)
MULTIPLIER_HIGH, MULTIPLIER_LOW = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)
ONE, ELEVEN, ROTATE, WIDTH = np.uint64(1), np.uint64(11), np.uint64(58), np.uint64(64)
TO_UNIT = 1.0 / 9007199254740992.0


def entropy_words(seed: int) -> Any:
    """The seed as SeedSequence sees it before a spawn key: 32-bit words, lowest first, at least four; uint64 (n,)."""
    words = [(seed >> shift) & 0xFFFFFFFF for shift in range(0, max(seed.bit_length(), 32 * POOL), 32)]
    return np.array(words, dtype=np.uint64)


@compiled
def make_stream() -> Any:
    """Room for a stream: state high and low, increment high and low; uint64 (4,)."""
    return np.zeros(4, np.uint64)


@compiled
def seed_stream(stream: Any, entropy: Any, episode: int, which: int) -> None:
    """Put a stream at the beginning of an episode's numbers for the world or the agent."""
    if which == WORLD:
        seed = world_seed(entropy, episode)
        words = np.array([seed & LOW, seed >> HALF, np.uint64(0), np.uint64(0)], np.uint64)
    else:
        words = _with_spawn_key(entropy, episode, which)
    _seed_pcg(stream, _generated(_mixed(words), 4))


@compiled
def world_seed(entropy: Any, episode: int) -> Any:
    """The number with which a Gymnasium environment is reset, for the same draws as the compiled world; uint64."""
    return _generated(_mixed(_with_spawn_key(entropy, episode, WORLD)), 1)[0]


@compiled
def _with_spawn_key(entropy: Any, episode: int, which: int) -> Any:
    words = np.empty(entropy.shape[0] + 2, np.uint64)
    words[:-2] = entropy
    words[-2] = np.uint64(episode)
    words[-1] = np.uint64(which)
    return words


@compiled
def random(stream: Any) -> float:
    """A uniform number from [0, 1), as `Generator.random()` draws it."""
    _step(stream)
    high, low = stream[0], stream[1]
    value = high ^ low
    turn = high >> ROTATE
    value = (value >> turn) | (value << ((WIDTH - turn) & np.uint64(63)))
    return float(value >> ELEVEN) * TO_UNIT


@compiled
def _step(stream: Any) -> None:
    """state = state * multiplier + increment, modulo 2**128."""
    high, low = stream[0], stream[1]
    product_high, product_low = _wide_product(low, MULTIPLIER_LOW)
    product_high += high * MULTIPLIER_LOW + low * MULTIPLIER_HIGH
    total = product_low + stream[3]
    carry = ONE if total < product_low else np.uint64(0)
    stream[0] = product_high + stream[2] + carry
    stream[1] = total


@compiled
def _wide_product(a: Any, b: Any) -> tuple[Any, Any]:
    """High and low 64 bits of a product of 64-bit numbers."""
    a_high, a_low, b_high, b_low = a >> HALF, a & LOW, b >> HALF, b & LOW
    low = a_low * b_low
    middle = a_high * b_low + (low >> HALF)
    other = a_low * b_high + (middle & LOW)
    return a_high * b_high + (middle >> HALF) + (other >> HALF), (other << HALF) | (low & LOW)


@compiled
def _seed_pcg(stream: Any, words: Any) -> None:
    """PCG's own seeding: the first 128 bits are the state, the other the sequence."""
    stream[0], stream[1] = np.uint64(0), np.uint64(0)
    stream[2] = (words[2] << ONE) | (words[3] >> np.uint64(63))
    stream[3] = (words[3] << ONE) | ONE
    _step(stream)
    low = stream[1] + words[1]
    carry = ONE if low < words[1] else np.uint64(0)
    stream[0] += words[0] + carry
    stream[1] = low
    _step(stream)


@compiled
def _hashed(value: Any, constant: Any) -> tuple[Any, Any]:
    value ^= constant
    constant = (constant * MULT_A) & LOW
    value = (value * constant) & LOW
    return value ^ (value >> XSHIFT), constant


@compiled
def _joined(x: Any, y: Any) -> Any:
    # Minus is written as adding 2**32, for the sake of the run without Numba.
    result = ((x * MIX_LEFT) + (LOW + ONE) - ((y * MIX_RIGHT) & LOW)) & LOW
    return result ^ (result >> XSHIFT)


@compiled
def _mixed(entropy: Any) -> Any:
    """SeedSequence's pool for at least four words of entropy."""
    pool = np.empty(POOL, np.uint64)
    constant = INIT_A
    for i in range(POOL):
        pool[i], constant = _hashed(entropy[i], constant)
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                value, constant = _hashed(pool[source], constant)
                pool[target] = _joined(pool[target], value)
    for source in range(POOL, entropy.shape[0]):
        for target in range(POOL):
            value, constant = _hashed(entropy[source], constant)
            pool[target] = _joined(pool[target], value)
    return pool


@compiled
def _generated(pool: Any, count: int) -> Any:
    """SeedSequence.generate_state(count, uint64)."""
    words = np.zeros(count, np.uint64)
    constant = INIT_B
    for i in range(2 * count):
        value = pool[i % POOL] ^ constant
        constant = (constant * MULT_B) & LOW
        value = (value * constant) & LOW
        value ^= value >> XSHIFT
        words[i // 2] |= value << (HALF * np.uint64(i % 2))
    return words
