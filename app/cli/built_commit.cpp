#include "app/cli/built_commit.h"

#include "commit.h"  // written at every build: nothing but this file is compiled anew for a new commit

namespace canopy::cli {

const char* built_commit() {
  return CANOPY_COMMIT;
}

}  // namespace canopy::cli
