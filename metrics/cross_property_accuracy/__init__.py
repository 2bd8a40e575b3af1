"""Accuracy on one property before and after editing another."""
