// The one translation unit that holds volk itself (Debian ships it as source).
#define VOLK_IMPLEMENTATION
#include <volk.h>
