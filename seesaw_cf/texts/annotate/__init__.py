"""Annotators: does a passage support or contradict a claim?"""
