#include "engine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace kiln::stand_in {

engine& the_engine() {
  // Never destroyed, because threads may outlive static objects.
  static auto* e = new engine;
  return *e;
}

thread_local int engine::inside_scope::depth = 0;
#ifdef KILN_STAND_IN_CUDA
constexpr int first_device = engine::none;
#else
constexpr int first_device = 0;
#endif
thread_local int engine::current = first_device;

namespace {

// An error that a kernel hits when it runs makes the device unusable.
void perform(const work& what, stream_object& s) {
  if (what(s)) return;
  engine& e = the_engine();
  ++e.late_uses;
  e.lost_devices.emplace(s.device, illegal_address);
}

// Functions that work without a context, and with one that is lost.
bool asks_for_devices(std::string_view name) {
  constexpr std::array<std::string_view, 9> beginnings{"cuInit",       "cuDriver",       "cuDevice",
                                                       "cuCtx",        "hipInit",        "hipDriver",
                                                       "hipGetDevice", "hipDeviceTotal", "hipSetDevice"};
  return name == "hipDeviceGet" || name == "hipDeviceGetName" || name == "hipDeviceGetAttribute" ||
         std::ranges::any_of(beginnings, [&](std::string_view each) { return name.starts_with(each); });
}

}  // namespace

int engine::enter(const char* name) {
  ++counts[name];
  log_text += name;
  log_text += '\n';
  int status = lost(asks_for_devices(name) ? every_device : current);
  if (!status && current == none && !asks_for_devices(name)) status = no_context;
  for (fault& f : faults)
    if (f.name == name && f.left && --f.left == 0) status = f.status;
  return status;
}

void engine::step(stream_object& s) {
  auto item = std::move(s.work_list.front());
  s.work_list.pop_front();
  perform(item.run, s);
}

int engine::drain(stream_object& s) {
  while (!s.work_list.empty() && !s.hung && !lost(s.device)) step(s);
  if (s.hung) return timed_out;
  while (!s.work_list.empty()) {  // of a lost device
    auto item = std::move(s.work_list.front());
    s.work_list.pop_front();
    if (item.releases) perform(item.run, s);
  }
  return lost(s.device);
}

void engine::finish(moment& m) {
  while (!m.done && !m.stream->work_list.empty() && !m.stream->hung && !lost(m.stream->device)) step(*m.stream);
}

void* engine::allocate(std::map<char*, allocation>& where, std::size_t bytes, int device, bool pooled) {
  if (bytes > std::size_t{1} << 40) return nullptr;
  auto* real = static_cast<char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  if (!real) return nullptr;
  std::memset(real, 0xCD, bytes);
  where.emplace(real, allocation{bytes, device, pooled});
  return real;
}

int engine::release(std::map<char*, allocation>& where, char* real) {
  auto it = where.find(real);
  if (it == where.end()) return invalid_value;
  std::memset(real, 0xDD, it->second.bytes);
  std::free(real);
  where.erase(it);
  return ok;
}

char* engine::real(const void* device, std::size_t bytes, int user) {
  auto address = reinterpret_cast<std::size_t>(device);
  if (address < device_bias) return nullptr;
  auto* found = reinterpret_cast<char*>(address - device_bias);
  auto it = device_memory.upper_bound(found);
  if (it == device_memory.begin()) return nullptr;
  --it;
  const allocation& memory = it->second;
  if (user != every_device && user != memory.device && (memory.pooled || !peers.contains({user, memory.device})))
    return nullptr;
  return found + bytes <= it->first + memory.bytes ? found : nullptr;
}

bool engine::is_pinned(const void* host, std::size_t bytes) const {
  auto* at = static_cast<const char*>(host);
  for (auto [begin, memory] : host_memory)
    if (at >= begin && at + bytes <= begin + memory.bytes) return true;
  return false;
}

namespace {

const control controls{
    [] {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      e.counts.clear(), e.log_text.clear(), e.faults.clear(), e.launched_streams.clear();
      e.lost_devices.clear(), e.peers.clear(), e.late_uses = 0, e.device_count = 2, e.version = 0;
      engine::current = first_device;
    },
    [](const char* name) {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      if (name) return e.counts.contains(name) ? e.counts.at(name) : 0;
      std::size_t all = 0;
      for (const auto& [each, count] : e.counts) all += count;
      return all;
    },
    [] {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      e.text = e.log_text;
      return e.text.c_str();
    },
    [](const char* name, std::size_t nth, int status) {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      e.faults.push_back({name, nth, status});
    },
    [](int status) {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      e.lost_devices[engine::every_device] = status;
    },
    [] {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      return e.live();
    },
    [] {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      e.text.clear();
      auto add = [&](const char* what, std::size_t count) {
        if (count) e.text += std::to_string(count) + " " + what + " ";
      };
      add("device memory", e.device_memory.size()), add("host memory", e.host_memory.size()),
          add("streams", e.streams.size()), add("events", e.events.size());
      add("modules", e.modules.size()), add("pools", e.pools.size()), add("links", e.links.size()),
          add("graphs", e.graphs.size()), add("graph executables", e.execs.size()), add("contexts", e.contexts);
      return e.text.c_str();
    },
    [] {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      return e.late_uses;
    },
    [] {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      auto free_memory = [](auto& all) {
        for (const auto& [memory, about] : all) std::free(memory);
        all.clear();
      };
      auto free_objects = [](auto& all) {
        for (auto* object : all) delete object;
        all.clear();
      };
      free_memory(e.device_memory), free_memory(e.host_memory);
      free_objects(e.streams), free_objects(e.events), free_objects(e.modules), free_objects(e.pools),
          free_objects(e.links), free_objects(e.graphs), free_objects(e.execs);
      e.contexts = 0;
    },
    [](int count) {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      e.device_count = count;
    },
    [] {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      return e.launched_streams.size();
    },
    [] { return engine::inside_scope::depth > 0; },
    [](int version) {
      engine& e = the_engine();
      std::lock_guard lock(e.mutex);
      e.version = version;
    },
};

}  // namespace
}  // namespace kiln::stand_in

extern "C" __attribute__((visibility("default"))) const kiln::stand_in::control* kiln_stand_in_control() {
  return &kiln::stand_in::controls;
}
