"""Tests of seesaw_cf.generation."""
