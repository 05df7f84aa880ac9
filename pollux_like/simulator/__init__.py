"""Strict stand-ins for the vendor APIs."""
