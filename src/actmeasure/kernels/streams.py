"""NumPy's random numbers inside compiled loops, and draws of integers and of table entries with them.

Every episode has streams of its own, those of `Generator(PCG64(SeedSequence(seed, spawn_key=(episode, which))))`. Making
such a generator in Python costs more than many an episode, so the same arithmetic is done here: `random(stream)` gives, bit
for bit, the numbers that the generator's `random()` gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure.kernels.jit import no_refcount

#: The two streams of an episode: the numbers of the model, and those of the agent.
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
    """Return the pool of `SeedSequence(seed)` before the spawn key is mixed in, then its hash constant; uint64 (5,)."""
    words = [(seed >> shift) & 0xFFFFFFFF for shift in range(0, max(seed.bit_length(), 32 * POOL), 32)]
    stream = make_stream()
    stream[8:] = words[:POOL]
    constant = _mix(stream)
    for word in words[POOL:]:
        constant = _mix_in(stream, np.uint64(word), constant)
    return np.append(stream[4:8], np.uint64(constant))


def make_stream() -> Any:
    """Return memory for a stream: state high and low, increment high and low, and eight words for seeding; uint64 (12,)."""
    return np.zeros(4 + 2 * POOL, np.uint64)


@no_refcount
def seed_stream(stream: Any, entropy: Any, episode: int, which: int) -> None:
    """Set a stream to the beginning of an episode's numbers for the model (`WORLD`) or the agent (`AGENT`)."""
    if which == WORLD:
        seed = world_seed(stream, entropy, episode)
        stream[8], stream[9], stream[10], stream[11] = seed & LOW, seed >> HALF, np.uint64(0), np.uint64(0)
        _mix(stream)
    else:
        _mix_with_spawn_key(stream, entropy, episode, which)
    _seed_pcg(stream, _generated(stream, 0), _generated(stream, 1), _generated(stream, 2), _generated(stream, 3))


@no_refcount
def world_seed(stream: Any, entropy: Any, episode: int) -> Any:
    """Return the seed with which a Gymnasium environment draws the same numbers as the compiled simulation; uint64."""
    _mix_with_spawn_key(stream, entropy, episode, WORLD)
    return _generated(stream, 0)


@no_refcount
def random(stream: Any) -> float:
    """Draw a uniform number from [0, 1), as `Generator.random()` does."""
    _step(stream)
    high, low = stream[0], stream[1]
    value = high ^ low
    turn = high >> ROTATE
    value = (value >> turn) | (value << ((WIDTH - turn) & np.uint64(63)))
    return float(value >> ELEVEN) * TO_UNIT


@no_refcount
def draw(numbers: Any, stream: Any) -> None:
    """Fill an array, float64 (n,), with uniform numbers from [0, 1)."""
    for i in range(numbers.shape[0]):
        numbers[i] = random(stream)


@no_refcount
def _step(stream: Any) -> None:
    """Advance the generator: state = state * multiplier + increment, modulo 2**128."""
    high, low = stream[0], stream[1]
    product_high, product_low = _wide_product(low, MULTIPLIER_LOW)
    product_high += high * MULTIPLIER_LOW + low * MULTIPLIER_HIGH
    total = product_low + stream[3]
    carry = ONE if total < product_low else np.uint64(0)
    stream[0] = product_high + stream[2] + carry
    stream[1] = total


@no_refcount
def _wide_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the high and low 64 bits of a product of 64-bit numbers."""
    a_high, a_low, b_high, b_low = a >> HALF, a & LOW, b >> HALF, b & LOW
    low = a_low * b_low
    middle = a_high * b_low + (low >> HALF)
    other = a_low * b_high + (middle & LOW)
    return a_high * b_high + (middle >> HALF) + (other >> HALF), (other << HALF) | (low & LOW)


@no_refcount
def _seed_pcg(stream: Any, state_high: Any, state_low: Any, sequence_high: Any, sequence_low: Any) -> None:
    """Seed a PCG64 generator with 128 bits of state and 128 bits that select the sequence."""
    stream[0], stream[1] = np.uint64(0), np.uint64(0)
    stream[2] = (sequence_high << ONE) | (sequence_low >> np.uint64(63))
    stream[3] = (sequence_low << ONE) | ONE
    _step(stream)
    low = stream[1] + state_low
    carry = ONE if low < state_low else np.uint64(0)
    stream[0] += state_high + carry
    stream[1] = low
    _step(stream)


@no_refcount
def _hashed(value: Any, constant: Any) -> tuple[Any, Any]:
    value ^= constant
    constant = (constant * MULT_A) & LOW
    value = (value * constant) & LOW
    return value ^ (value >> XSHIFT), constant


@no_refcount
def _joined(x: Any, y: Any) -> Any:
    # 2**32 is added so that the difference is not negative, which without Numba would be an overflow.
    result = ((x * MIX_LEFT) + (LOW + ONE) - ((y * MIX_RIGHT) & LOW)) & LOW
    return result ^ (result >> XSHIFT)


@no_refcount
def _mix(stream: Any) -> Any:
    """Compute the pool of SeedSequence (words 4 to 7 of the stream) from entropy (words 8 to 11); return its hash constant."""
    constant = INIT_A
    for i in range(POOL):
        stream[4 + i], constant = _hashed(stream[8 + i], constant)
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                value, constant = _hashed(stream[4 + source], constant)
                stream[4 + target] = _joined(stream[4 + target], value)
    return constant


@no_refcount
def _mix_with_spawn_key(stream: Any, entropy: Any, episode: int, which: int) -> None:
    """Compute the pool from the entropy, the number of the episode and that of its stream."""
    for i in range(POOL):
        stream[4 + i] = entropy[i]
    constant = entropy[POOL]
    constant = _mix_in(stream, np.uint64(episode), constant)
    _mix_in(stream, np.uint64(which), constant)


@no_refcount
def _mix_in(stream: Any, word: Any, constant: Any) -> Any:
    for target in range(POOL):
        value, constant = _hashed(word, constant)
        stream[4 + target] = _joined(stream[4 + target], value)
    return constant


@no_refcount
def _generated(stream: Any, number: int) -> Any:
    """Return one word of `SeedSequence.generate_state(..., uint64)`, computed from the pool."""
    constant = INIT_B
    for _ in range(2 * number):
        constant = (constant * MULT_B) & LOW
    word = np.uint64(0)
    for half in range(2):
        value = stream[4 + (2 * number + half) % POOL] ^ constant
        constant = (constant * MULT_B) & LOW
        value = (value * constant) & LOW
        value ^= value >> XSHIFT
        word |= value << (HALF * np.uint64(half))
    return word


@no_refcount
def any_of(count: int, stream: Any) -> int:
    """Return a uniform random integer from 0 to count - 1."""
    return int(random(stream) * count)


@no_refcount
def pick(offsets: Any, probabilities: Any, row: int, uniform: float) -> int:
    """Return the entry of a row that a uniform number from [0, 1) selects by inversion; the last if rounding leaves a rest."""
    entry = offsets[row]
    last = offsets[row + 1] - 1
    while entry < last:
        uniform -= probabilities[entry]
        if uniform < 0:
            break
        entry += 1
    return entry  # type: ignore[no-any-return]
