"""The paper, reproduced: a recipe for each of its tables and figures, and what came out beside what it says."""
