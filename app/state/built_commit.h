#pragma once
// The commit that a program was built from; written anew at every build, so that only this file is compiled again.

namespace canopy {

/// The commit that this program was built from: "1a2b3c4d5e6f", followed by "-dirty" if files differed from it;
/// "unknown" if it was not built in a git checkout.
const char* built_commit();

}  // namespace canopy
