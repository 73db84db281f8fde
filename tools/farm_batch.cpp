#include "tools/farm_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "aot/onnx/external_data.hpp"
#include "ir/container/files.hpp"
#include "ir/container/format.hpp"
#include "ir/error.hpp"
#include "jit/compile_bytecode.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "tools/farm_options.hpp"

namespace kiln::tools {
namespace {

namespace fs = std::filesystem;

// A model as workers see it: the model file and its external data.
struct model_files {
  farm_kind kind{};
  std::vector<farm_input> inputs;
  std::map<std::string, fs::path> files;
};

farm_input hashed(const std::string& name, const fs::path& file, bool shared) {
  auto bytes = container::mapped_file::open(file)->bytes().size();
  return {name, blake3(container::mapped_file::open(file)->bytes()), bytes, shared ? fs::absolute(file).string() : ""};
}

bool is_container(const fs::path& file) {
  auto mapped = container::mapped_file::open(file);
  auto head = mapped->bytes().first(std::min(mapped->bytes().size(), container::magic.size()));
  return std::ranges::equal(head, std::as_bytes(std::span(container::magic)));
}

model_files read_model(const fs::path& file, const batch_options& options) {
  model_files m;
  m.kind = is_container(file) ? farm_kind::warm : farm_kind::compile;
  const std::string name = command_of(m.kind).model;
  m.inputs.push_back(hashed(name, file, options.shared));
  m.files[name] = file;
  if (m.kind == farm_kind::compile)
    for (const std::string& data : external_data_files(file)) {
      if (!m.files.emplace(data, file.parent_path() / data).second)
        throw error(
            error_kind::unsupported,
            fmt::format(
                "{}: its external data is called '{}', which is the name of the model itself on workers: rename it",
                file.string(), data));
      m.inputs.push_back(hashed(data, file.parent_path() / data, options.shared));
    }
  std::uint64_t all = 0;
  for (const farm_input& i : m.inputs) all += i.bytes;
  if (!options.shared && all > options.max_bytes)
    throw error(error_kind::unsupported,
                fmt::format("{}: has {} bytes with its weights, more than --max-bytes {}: raise that if the server's "
                            "memory allows it, or put the file where all workers can read it and use --shared",
                            file.string(), all, options.max_bytes));
  return m;
}

std::string as_name(std::string text) {
  std::string name;
  for (char c : text) {
    bool plain = std::isalnum(static_cast<unsigned char>(c));
    if (plain) name += c;
    else if (!name.empty() && name.back() != '_') name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  return name;
}

// The option lists that a model is submitted with, each with a suffix for the result's name. The suffix consists of the
// options, unless all models have the same options.
std::vector<std::pair<std::vector<std::string>, std::string>> variants_of(farm_kind kind,
                                                                          const std::vector<std::string>& own,
                                                                          const batch_options& options) {
  std::vector<std::pair<std::vector<std::string>, std::string>> result;
  const std::vector<std::string> alone{""};
  for (const std::string& variant : options.variants.empty() ? alone : options.variants) {
    std::vector<std::string> words = own, more = split_words(variant);
    words.insert(words.end(), more.begin(), more.end());
    std::string name =
        options.variants.size() > 1 || !own.empty() ? as_name(fmt::format("{}", fmt::join(words, " "))) : "";
    if (kind == farm_kind::compile || options.targets.empty()) {
      result.emplace_back(words, name);
      continue;
    }
    for (const std::string& target :
         options.targets) {  // a separate job for each target, so that they can run in parallel
      result.emplace_back(words, as_name(name + " " + target));
      result.back().first.insert(result.back().first.end(), {"--target", target});
    }
  }
  return result;
}

// The sources of custom operators with the files that they include. Each source gets its own folder among the job's
// inputs.
class source_files {
 public:
  // Adds the source and returns its name among the inputs.
  std::string add(const std::string& source, model_files& to) {
    auto found = known_.find(source);
    if (found == known_.end()) found = known_.emplace(source, read(source, known_.size())).first;
    for (const auto& [input, file] : found->second) {
      if (to.files.emplace(input.name, file).second) to.inputs.push_back(input);
    }
    return found->second.front().first.name;
  }

 private:
  using files = std::vector<std::pair<farm_input, fs::path>>;
  static files read(const std::string& source, std::size_t number) {
    const fs::path folder = fs::path(source).parent_path(), inside = fmt::format("operators{}", number);
    files result;
    auto add = [&](const std::string& name) {
      result.emplace_back(hashed((inside / name).string(), folder / name, false), folder / name);
    };
    add(fs::path(source).filename().string());
    for (const std::string& included : spirv::compile_hip_file(source, {.whole_module = false}).included) add(included);
    return result;
  }
  std::map<std::string, files> known_;
};

}  // namespace

std::vector<batch_job> make_batch(const std::vector<listed_model>& models, const batch_options& options) {
  std::vector<batch_job> batch;
  std::map<std::string, model_files> known;
  source_files sources;
  std::map<std::string, std::string> names;  // names of results, and the job that each belongs to
  for (const listed_model& model : models) {
    auto found = known.find(model.file);
    if (found == known.end()) found = known.emplace(model.file, read_model(model.file, options)).first;
    for (auto& [words, suffix] : variants_of(found->second.kind, model.options, options)) {
      model_files m = found->second;
      std::vector<std::string> travelling;
      for (const given_option& o : read_farm_options(m.kind, words)) {
        travelling.emplace_back(o.name);
        if (o.kind == farm_value::source) travelling.push_back(sources.add(o.value, m));
        else if (o.kind != farm_value::none) travelling.push_back(o.value);
      }
      batch_job b;
      b.job = {m.kind, m.inputs, travelling, compiler_version(),
               fmt::format("{}{}{}", model.file, words.empty() ? "" : " ", fmt::join(words, " "))};
      check_farm_job(b.job);
      b.id = b.job.id();
      b.files = m.files;
      b.result_name =
          fs::path(model.file).stem().string() + (suffix.empty() ? "" : "." + suffix) + command_of(m.kind).extension;
      auto [other, fresh] = names.emplace(b.result_name, b.job.label);
      if (!fresh)
        throw error(error_kind::usage, fmt::format("'{}' and '{}' would both be fetched as {}", other->second,
                                                   b.job.label, b.result_name));
      batch.push_back(std::move(b));
    }
  }
  return batch;
}

void upload_inputs(const batch_job& job, blob_store& blobs) {
  for (const farm_input& input : job.job.inputs)
    if (input.path.empty()) blobs.put(input.hash, container::mapped_file::open(job.files.at(input.name))->bytes());
}

}  // namespace kiln::tools
