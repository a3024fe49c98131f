"""How a table is, what pays, and who does it: health, optimize, the policy after commits."""
