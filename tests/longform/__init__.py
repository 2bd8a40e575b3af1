"""Tests of seesaw_cf.longform."""
