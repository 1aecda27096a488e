"""From trained runs to predictions and scores on disk: suites that can each be repeated alone."""
