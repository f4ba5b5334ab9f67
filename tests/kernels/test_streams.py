"""The random numbers inside kernels are NumPy's, bit for bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actmeasure.kernels import streams


@given(st.integers(0, 2**140), st.integers(0, 2**32 - 1))
def test_streams_are_those_of_numpys_generators(seed, episode):
    entropy, stream = streams.entropy_words(seed), streams.make_stream()
    streams.seed_stream(stream, entropy, episode, streams.AGENT)
    key = np.random.SeedSequence(seed, spawn_key=(episode, 1))
    generator = np.random.Generator(np.random.PCG64(key))
    assert [streams.random(stream) for _ in range(20)] == generator.random(20).tolist()
    drawn = np.empty(5)
    streams.draw(drawn, stream)
    assert drawn.tolist() == generator.random(5).tolist()

    number = int(streams.world_seed(stream, entropy, episode))
    key = np.random.SeedSequence(seed, spawn_key=(episode, 0))
    assert number == int(key.generate_state(1, np.uint64)[0])
    streams.seed_stream(stream, entropy, episode, streams.WORLD)
    assert [streams.random(stream) for _ in range(20)] == np.random.default_rng(number).random(20).tolist()
