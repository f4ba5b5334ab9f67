"""Tables, figures and pages from what a study has stored."""
