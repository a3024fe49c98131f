"""Manifests, statistics and paths written anew; no row is touched."""
