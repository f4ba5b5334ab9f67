"""Compiled loops over plain arrays. The only place with Numba; they validate nothing and import nothing of ours."""
