"""Run what a statement asks for."""
