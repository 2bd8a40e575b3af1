"""Tests of seesaw_cf.stereotypes."""
