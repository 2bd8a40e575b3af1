"""Tests of seesaw_cf.texts."""
