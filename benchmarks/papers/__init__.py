"""What the five papers measured, measured here: a module for each, and the pages in docs/papers that they write."""
