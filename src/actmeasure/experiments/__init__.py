"""Studies: problems x agents x seeds as data, run once, stored as files, resumed for free."""
