#include "app/state/built_commit.h"

#include "commit.h"  // written at every build; only this file is compiled again for a new commit

namespace canopy {

const char* built_commit() {
  return CANOPY_COMMIT;
}

}  // namespace canopy
