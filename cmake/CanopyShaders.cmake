# Placeholder until shaders land; see shaders/CMakeLists.txt.
