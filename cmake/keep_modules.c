/* Linked into every program of a build with AddressSanitizer or LeakSanitizer, in place of the C library's dlclose().
 *
 * The Vulkan loader unloads drivers and layers while a program ends. Memory that only their static variables point to
 * then looks leaked, with stacks that name no module any more, so that no suppression could tell it from a leak in
 * Canopy. If they stay loaded, none of the drivers and window libraries that the tests use leaks. */
int dlclose(void* module) {
  (void)module;
  return 0;
}

/* What MicroTeX leaks, of third parties: a table of its font, and rows of an array that it finds to be wrong. */
const char* __lsan_default_suppressions(void);
const char* __lsan_default_suppressions(void) {
  return "leak:microtex::\n";
}
