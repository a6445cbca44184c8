"""Confirm predictions on real databases."""
