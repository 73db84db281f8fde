#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/container/container.hpp"
#include "ir/trust/native_consent.hpp"
#include "tools/command.hpp"
#include "tools/model_summary.hpp"

namespace kiln::tools {
namespace {

struct options {
  std::string before, after;
};

struct kernel_use {
  std::string symbol;
  std::size_t uses = 0;
};

// The properties of a file that are compared.
struct contents {
  // One line for each property, such as "input x" → "f32[1, 3, 9, 7]".
  std::map<std::string, std::string> properties;
  std::map<std::string, kernel_use> kernels;  // by payload
};

contents read_contents(const std::string& file) {
  // diff runs no code of the files, so it needs no trusted signature.
  const program p = read_program(file, native_consent{.allow_unsigned = true});
  const container_info info = inspect(file);
  const model_summary summary = summarize(p);
  contents result;
  auto& properties = result.properties;
  for (value v : p.main().parameters()) properties["input " + module::parameter_name(v)] = v.type().str();
  const auto names = p.main().output_names();
  const auto outputs = p.main().outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) properties["output " + names[i]] = outputs[i].type().str();
  for (const auto& [name, count] : summary.operators) properties["operator " + name] = std::to_string(count);
  properties["format version"] = std::to_string(info.format_version);
  properties["required version"] = info.written_by;
  for (const section_info& s : info.sections)
    if (s.kind == "weights")
      properties["weights"] = fmt::format("{} bytes, {}", s.raw_bytes, s.hash.hex().substr(0, 16));
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>()) {
        kernel_use& use = result.kernels[c->payload];
        use.symbol = c->symbol;
        ++use.uses;
      }
  return result;
}

template <class Map>
std::set<std::string> keys_of(const Map& a, const Map& b) {
  std::set<std::string> keys;
  for (const Map* map : {&a, &b})
    for (const auto& [key, entry] : *map) keys.insert(key);
  return keys;
}

int compare_files(const options& o, const output_options& output) {
  const contents before = read_contents(o.before), after = read_contents(o.after);
  auto changed = nlohmann::ordered_json::array();
  auto text_of = [](const contents& c, const std::string& key) {
    auto found = c.properties.find(key);
    return found == c.properties.end() ? nlohmann::ordered_json() : nlohmann::ordered_json(found->second);
  };
  for (const std::string& key : keys_of(before.properties, after.properties))
    if (auto a = text_of(before, key), b = text_of(after, key); a != b)
      changed.push_back({{"what", key}, {"before", a}, {"after", b}});
  auto kernels = nlohmann::ordered_json::array();
  std::size_t common = 0;
  for (const std::string& payload : keys_of(before.kernels, after.kernels)) {
    auto a = before.kernels.find(payload), b = after.kernels.find(payload);
    const std::size_t uses_before = a == before.kernels.end() ? 0 : a->second.uses;
    const std::size_t uses_after = b == after.kernels.end() ? 0 : b->second.uses;
    common += uses_before > 0 && uses_after > 0;
    if (uses_before == uses_after) continue;
    kernels.push_back({{"hash", payload},
                       {"symbol", uses_before > 0 ? a->second.symbol : b->second.symbol},
                       {"uses_before", uses_before},
                       {"uses_after", uses_after}});
  }
  const bool equal = changed.empty() && kernels.empty();
  output.print({{"before", o.before},
                {"after", o.after},
                {"equal", equal},
                {"changed", changed},
                {"kernels", kernels},
                {"common_kernels", common}},
               [&] {
                 auto shown = [](const nlohmann::ordered_json& text) {
                   return text.is_null() ? std::string("(none)") : text.get<std::string>();
                 };
                 for (const auto& c : changed)
                   print("{}: {} -> {}\n", c["what"].get<std::string>(), shown(c["before"]), shown(c["after"]));
                 for (const auto& k : kernels)
                   print("kernel {}  x{} -> x{}  {}\n", k["hash"].get<std::string>().substr(0, 16),
                         k["uses_before"].get<std::size_t>(), k["uses_after"].get<std::size_t>(),
                         k["symbol"].get<std::string>());
                 print("{} kernels are in both files; {}\n", common, equal ? "no difference" : "the files differ");
               });
  return equal ? 0 : 1;
}

}  // namespace

action declare_diff(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("BEFORE", o->before, ".kiln file")->required();
  app.add_option("AFTER", o->after, ".kiln file")->required();
  return [o](const output_options& output) { return compare_files(*o, output); };
}

}  // namespace kiln::tools
