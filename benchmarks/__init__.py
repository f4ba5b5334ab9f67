"""Speed and size goals. `make bench` runs them all and says which are met."""
