"""Programs that cases run in an interpreter of their own."""
