"""Search runs that a level allows and that violate the target, from one observed run."""
