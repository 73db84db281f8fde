#include "jit/cache/kernel_key.hpp"

namespace kiln {
namespace {

template <class List, class Print>
std::string joined(const List& list, std::string_view separator, Print print) {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += separator;
    text += print(item);
  }
  return text;
}

}  // namespace

key_fields kernel_key::fields() const {
  auto print_shape = [](const shape& s) { return s.str(); };
  auto print_choice = [](const auto& choice) { return choice.first + "=" + std::to_string(choice.second); };
  return {{"payload", payload},
          {"inputs", joined(inputs, " ", print_shape)},
          {"outputs", joined(outputs, " ", print_shape)},
          {"configuration", joined(configuration, " ", print_choice)},
          {"target", target},
          {"code", code},
          {"llvm", llvm},
          {"driver", driver},
          {"constants", constants}};
}

content_hash kernel_key::hash() const { return hash_of(fields()); }

content_hash hash_of(const key_fields& fields) {
  field_hasher hasher;
  for (const auto& [name, value] : fields) hasher.add(name).add(value);
  return hasher.finish();
}

std::string_view field(const key_fields& fields, std::string_view name) {
  for (const auto& [label, value] : fields)
    if (label == name) return value;
  return {};
}

}  // namespace kiln
