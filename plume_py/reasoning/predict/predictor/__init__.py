"""From one observed run to another that its level allows and that is not serializable."""
