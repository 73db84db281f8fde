// Executes launches, copies and fills in a stream or a graph.
#include <cstring>

#include "engine.hpp"

namespace kiln::stand_in {

int later(void* handle, work what, node_object::kind kind, bool releases) {
  engine& e = the_engine();
  stream_object* s = e.stream(handle);
  if (!e.alive(s)) return invalid_value;
  if (!s->capture) {
    s->work_list.push_back({std::move(what), releases});
    return ok;
  }
  auto node = std::make_unique<node_object>(node_object{kind, std::move(what), {}, s->capture.get()});
  if (s->last) node->after.push_back(static_cast<node_object*>(s->last));
  s->last = node.get();
  s->capture->nodes.push_back(std::move(node));
  return ok;
}

int kernel_work(void* function, const unsigned* grid, const unsigned* block, void** parameters, work& result) {
  const kernel& k = *static_cast<function_object*>(function)->what;
  const int device = static_cast<function_object*>(function)->device;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || block[0] == 0 || block[0] > 1024 || block[1] != 1 ||
      block[2] != 1)
    return invalid_value;
  if (std::strcmp(k.name, "hang") == 0) {
    result = [](stream_object& s) { return s.hung = true; };
    return ok;
  }
  if (std::strcmp(k.name, "fault") == 0) {
    result = [device](stream_object&) { return the_engine().lost_devices.emplace(device, illegal_address), true; };
    return ok;
  }
  std::vector<void*> values;  // a tensor map begins with its address
  for (unsigned i = 0; i < k.arguments; ++i) {
    void* value;
    std::memcpy(&value, parameters[i], sizeof value);
    values.push_back(value);
  }
  result = [&k, device, values, items = static_cast<long long>(grid[0]) * block[0]](stream_object&) {
    std::vector<void*> buffers;
    for (void* value : values) {
      buffers.push_back(the_engine().real(value, 1, device));
      if (!buffers.back() && the_engine().real(value))  // of another device
        return the_engine().lost_devices.emplace(device, illegal_address), true;
      if (!buffers.back()) return false;
    }
    k.run(buffers.data(), 0, items);
    return true;
  };
  return ok;
}

work copy_work(void* to, const void* from, std::size_t bytes, bool from_host, bool to_host) {
  return [=](stream_object&) {
    engine& e = the_engine();
    char* target = to_host ? static_cast<char*>(to) : e.real(to, bytes);
    const char* source = from_host ? static_cast<const char*>(from) : e.real(from, bytes);
    if (!target || !source || (from_host && !e.is_pinned(from, bytes)) || (to_host && !e.is_pinned(to, bytes)))
      return false;
    std::memmove(target, source, bytes);
    return true;
  };
}

work fill_work(void* to, unsigned value, std::size_t element_bytes, std::size_t count) {
  return [=](stream_object&) {
    char* target = the_engine().real(to, count * element_bytes);
    if (!target) return false;
    for (std::size_t i = 0; i < count; ++i) std::memcpy(target + i * element_bytes, &value, element_bytes);
    return true;
  };
}

}  // namespace kiln::stand_in
