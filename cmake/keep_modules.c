/* Linked into every program of a build with AddressSanitizer or LeakSanitizer, in place of the C library's dlclose().
 *
 * The Vulkan loader unloads drivers and layers while a program ends. What only their static variables point to then
 * looks lost, with stacks that name no module any more, so that no suppression could tell it from a leak of ours. Loaded
 * to the end, none of the drivers and window libraries that the tests use leaks, and there is nothing to suppress. */
int dlclose(void* module) {
  (void)module;
  return 0;
}
