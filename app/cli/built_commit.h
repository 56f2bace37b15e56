#pragma once

namespace canopy::cli {

/// The commit that this program was built from, "1a2b3c4d5e6f", with "-dirty" behind it where files differed from it;
/// "unknown" where it was not built in a git checkout.
const char* built_commit();

}  // namespace canopy::cli
