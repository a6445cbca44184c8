"""Does a prediction come true on a real database? Its statements are sent again, in an order that should do it."""
