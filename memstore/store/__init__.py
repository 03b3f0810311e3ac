"""Where it is kept: the only room that knows SQL and the driver."""
