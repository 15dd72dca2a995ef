// Carries the precompiled LibTorch header that every other target reuses.
