#include "onnxruntime/options.hpp"

#include <charconv>
#include <functional>
#include <string_view>

namespace kiln::ort {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw failure(ORT_INVALID_ARGUMENT, "kiln: option '" + name + "': " + why);
}

template <class Number>
Number number(const std::string& name, const std::string& value) {
  Number result{};
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (problem != std::errc() || end != value.data() + value.size() || result < 0)
    refuse(name, "'" + value + "' is no number");
  return result;
}

bool yes(const std::string& name, const std::string& value) {
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  refuse(name, "'" + value + "' is neither 1 nor 0");
}

template <class Value>
Value one_of(const std::string& name, const std::string& value, const std::map<std::string, Value>& known) {
  if (const auto found = known.find(value); found != known.end()) return found->second;
  std::string list;
  for (const auto& [text, ignored] : known) list += (list.empty() ? "" : ", ") + text;
  refuse(name, "'" + value + "' is not one of " + list);
}

using setter = std::function<void(provider_options&, const std::string& name, const std::string& value)>;

const std::map<std::string, setter>& setters() {
  static const std::map<std::string, setter> all{
      {"device", [](auto& o, auto&, auto& v) { o.device = v; }},
      {"cache", [](auto& o, auto&, auto& v) { o.cache = v; }},
      {"compiler", [](auto& o, auto&, auto& v) { o.compiler = v; }},
      {"no-cache", [](auto& o, auto& n, auto& v) { o.no_cache = yes(n, v); }},
      {"if-cached", [](auto& o, auto& n, auto& v) { o.if_cached = yes(n, v); }},
      {"threads", [](auto& o, auto& n, auto& v) { o.threads = number<unsigned>(n, v); }},
      {"tune-budget", [](auto& o, auto& n, auto& v) { o.tune_budget = number<double>(n, v); }},
      {"stream", [](auto& o, auto& n, auto& v) { o.stream = reinterpret_cast<void*>(number<std::uintptr_t>(n, v)); }},
      {"precision",
       [](auto& o, auto& n, auto& v) {
         o.precision = one_of<std::string>(n, v, {{"model", ""}, {"fp16", "--fp16"}, {"bf16", "--bf16"}});
       }},
      {"specialize",
       [](auto& o, auto& n, auto& v) {
         o.specialize = one_of<kiln_specialization>(
             n, v, {{"lazy", KILN_SPECIALIZE_LAZY}, {"eager", KILN_SPECIALIZE_EAGER}, {"off", KILN_SPECIALIZE_OFF}});
       }},
      {"tune",
       [](auto& o, auto& n, auto& v) {
         o.tune = one_of<kiln_tuning>(n, v,
                                      {{"off", KILN_TUNING_OFF},
                                       {"quick", KILN_TUNING_QUICK},
                                       {"full", KILN_TUNING_FULL},
                                       {"exhaustive", KILN_TUNING_EXHAUSTIVE}});
       }},
      {"graph",
       [](auto& o, auto& n, auto& v) {
         o.graph = one_of<kiln_graph_policy>(
             n, v, {{"off", KILN_GRAPH_OFF}, {"on", KILN_GRAPH_ON}, {"auto", KILN_GRAPH_AUTO}});
       }},
  };
  return all;
}

}  // namespace

provider_options read_options(const OrtSessionOptions* session, const std::string* gpu) {
  const std::string_view prefix = gpu ? "ep.kilngpuexecutionprovider." : "ep.kilnexecutionprovider.";
  const OrtApi& api = *runtime().api;
  OrtKeyValuePairs* pairs = nullptr;
  require(api.GetSessionOptionsConfigEntries(session, &pairs));
  const char *const *keys = nullptr, *const *values = nullptr;
  std::size_t count = 0;
  api.GetKeyValuePairs(pairs, &keys, &values, &count);
  std::map<std::string, std::string> given;
  for (std::size_t i = 0; i < count; ++i)
    if (const std::string_view key = keys[i]; key.starts_with(prefix))
      given.emplace(key.substr(prefix.size()), values[i]);
  api.ReleaseKeyValuePairs(pairs);
  provider_options result;
  for (const auto& [name, value] : given) {
    const auto found = setters().find(name);
    if (found == setters().end()) {
      std::string known;
      for (const auto& [text, ignored] : setters()) known += (known.empty() ? "" : ", ") + text;
      refuse(name, "there is no such option; these exist: " + known);
    }
    found->second(result, name, value);
  }
  if (gpu) {
    if (given.contains("device") && result.device != *gpu)
      refuse("device",
             "the session has the device " + *gpu + "; choose among the provider's devices by their metadata");
    result.device = *gpu;
  } else if (result.stream) {
    refuse("stream", std::string("it is for tensors on a GPU, with ") + gpu_provider_name);
  }
  return result;
}

}  // namespace kiln::ort
