"""Objectives and importance sampling, each defined once, from a model's densities."""
