"""One file per history format; ``registry`` lists them."""
