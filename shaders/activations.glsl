// Layout of activations: float [width, cols], the rows apart by a multiple of 64 floats (256 bytes: the largest uniform
// offset alignment Vulkan allows), of which those behind the last column mean nothing (engine/vulkan/device_objects.h).

uint activation_stride(uint cols) { return (cols + 63u) & ~63u; }

// Float index of a row's first element.
uint activation_row(uint row, uint cols) { return row * activation_stride(cols); }
