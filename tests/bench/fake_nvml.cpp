// NVML of a made-up machine: one GPU at 0000:41:00.0, whose counter rises by 2.5 J with each reading. An older one at
// 0000:42:00.0 tells only its power, and one at 0000:43:00.0 nothing.

namespace {

unsigned long long counter = 100'000;
int started = 0;
int older = 0, silent = 0, current = 0;  // their addresses are the handles

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++started;
  return 0;
}
int nvmlShutdown() {
  --started;
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  const auto is = [&](const char* other) {
    const char* at = id;
    while (*at != 0 && *at == *other) ++at, ++other;
    return *at == *other;
  };
  *device = is("0000:41:00.0") ? &current : is("0000:42:00.0") ? &older : is("0000:43:00.0") ? &silent : nullptr;
  return *device != nullptr && started > 0 ? 0 : 6;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (device != &current) return 3;
  *millijoules = counter += 2500;
  return 0;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  if (device == &silent) return 3;
  *milliwatts = 80'000;
  return 0;
}

int nvmlDeviceGetClockInfo(void* device, int kind, unsigned int* mhz) {
  if (device == &silent || kind != 1) return 3;
  *mhz = 1980;
  return 0;
}

int nvmlDeviceGetTemperature(void* device, int kind, unsigned int* celsius) {
  if (device == &silent || kind != 0) return 3;
  *celsius = 61;
  return 0;
}
}
