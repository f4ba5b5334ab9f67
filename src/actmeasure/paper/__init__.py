"""The reproduction of the paper: what is run, what was published, and the report on both."""
