// Models that other programs keep, in folders made up as theirs are.

#include "engine/hub/model_stores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

class Stores : public testing::Test {
 protected:
  fs::path write(const std::string& path, std::string_view content = "GGUF") const {
    fs::create_directories((folder_.path() / path).parent_path());
    return folder_.write(path, content);
  }
  fs::path folder(const std::string& name) const { return folder_.path() / name; }

  static const StoredModel& named(const std::vector<StoredModel>& models, const std::string& name) {
    static const StoredModel none;
    const auto found = std::ranges::find(models, name, &StoredModel::name);
    EXPECT_NE(found, models.end()) << name;
    return found == models.end() ? none : *found;
  }

  test::TempFolder folder_;
};

std::string layer(const std::string& kind, const std::string& digest) {
  return R"({"mediaType":"application/vnd.ollama.image.)" + kind + R"(","digest":"sha256:)" + digest + R"(","size":4})";
}

TEST_F(Stores, OllamaByItsManifests) {
  const std::string weights(64, 'a'), parameters(64, 'b'), words(64, 'c'), gone(64, 'd');
  const fs::path blob = write("o/blobs/sha256-" + weights);
  write("o/blobs/sha256-" + parameters, R"({"temperature":0.6,"stop":["<|im_end|>"]})");
  write("o/blobs/sha256-" + words, "{{ .Prompt }}");
  const auto manifest = [&](const std::string& place, const std::string& layers) {
    write("o/manifests/" + place, R"({"schemaVersion":2,"layers":[)" + layers + "]}");
  };
  manifest("registry.ollama.ai/library/llama3.2/3b", layer("model", weights) + "," + layer("template", words) + "," +
                                                         layer("params", parameters) + "," + layer("license", gone));
  manifest("registry.ollama.ai/someone/tuned/latest", layer("model", weights) + "," + layer("adapter", gone));
  manifest("hf.co/owner/repo/Q4_0", layer("model", gone));
  manifest("registry.ollama.ai/library/empty/latest", layer("license", words));
  manifest("registry.ollama.ai/library/evil/latest", R"({"mediaType":"application/vnd.ollama.image.model",)"
                                                     R"("digest":"sha256:../../../etc/passwd","size":4})");
  write("o/manifests/registry.ollama.ai/library/cut/latest", R"({"layers":[)");
  StorePlaces places;
  places.ollama = {folder("o"), folder("not there")};
  const std::vector<StoredModel> models = stored_models(places);
  ASSERT_EQ(models.size(), 6u);
  const StoredModel& good = named(models, "llama3.2:3b");
  EXPECT_EQ(good.path, blob);
  EXPECT_EQ(good.source, "Ollama");
  EXPECT_EQ(good.problem, "");
  ASSERT_EQ(good.notes.size(), 2u);
  EXPECT_NE(good.notes[0].find("template"), std::string::npos);
  EXPECT_NE(good.notes[1].find("temperature 0.6"), std::string::npos) << good.notes[1];
  for (const auto& [name, words_of] :
       std::vector<std::pair<std::string, std::string>>{{"someone/tuned:latest", "adapter"},
                                                        {"hf.co/owner/repo:Q4_0", "is not there"},
                                                        {"empty:latest", "no weights"},
                                                        {"evil:latest", "no SHA-256"},
                                                        {"cut:latest", "is not valid JSON"}}) {
    const StoredModel& bad = named(models, name);
    EXPECT_EQ(bad.path, "") << name;
    EXPECT_NE(bad.problem.find(words_of), std::string::npos) << bad.problem;
  }
}

TEST_F(Stores, FilesOfLmStudioLlamaCppAndGpt4All) {
  write("lm/someone/Model-GGUF/Model-Q4_0.gguf");
  write("lm/someone/Model-GGUF/mmproj-Model-F16.gguf");
  write("lm/someone/Split-GGUF/s-00001-of-00002.gguf");
  write("lm/someone/Split-GGUF/s-00002-of-00002.gguf");
  write("lm/someone/folder/config.json", "{}");
  write("llama/ggml-org_gemma-3-4b-it-GGUF_gemma-3-4b-it-Q4_K_M.gguf");
  write("llama/manifest=ggml-org=gemma-3-4b-it-GGUF=latest.json", "{}");
  write("llama/other.gguf.downloadInProgress");
  write("g/Phi-3.gguf");
  write("g/localdocs_v3.db", "x");
  StorePlaces places;
  places.lm_studio = {folder("lm")};
  places.llama_cpp = {folder("llama")};
  places.gpt4all = {folder("g")};
  std::vector<std::string> names;
  for (const StoredModel& model : stored_models(places)) names.push_back(model.source + ": " + model.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "LM Studio: someone/folder", "LM Studio: someone/Model-GGUF/Model-Q4_0.gguf",
                       "LM Studio: someone/Split-GGUF/s-00001-of-00002.gguf",
                       "llama.cpp: ggml-org/gemma-3-4b-it-GGUF/gemma-3-4b-it-Q4_K_M.gguf", "GPT4All: Phi-3.gguf"}));
}

TEST_F(Stores, JanByItsDescriptions) {
  const fs::path own = write("jan/llamacpp/models/janhq/Jan-v1/model.gguf");
  const fs::path elsewhere = write("elsewhere/x.gguf");
  write("jan/llamacpp/models/janhq/Jan-v1/model.yml",
        "embedding: false\nmodel_path: llamacpp/models/janhq/Jan-v1/model.gguf\n");
  write("jan/llamacpp/models/imported/model.yml", "model_path: \"" + elsewhere.string() + "\"\nname: x\n");
  write("jan/llamacpp/models/gone/model.yml", "model_path: llamacpp/models/gone/model.gguf\n");
  write("jan/llamacpp/models/bare/model.yml", "name: y\n");
  StorePlaces places;
  places.jan = {folder("jan")};
  const std::vector<StoredModel> models = stored_models(places);
  ASSERT_EQ(models.size(), 4u);
  EXPECT_EQ(named(models, "janhq/Jan-v1").path, own);
  EXPECT_EQ(named(models, "imported").path, elsewhere);
  EXPECT_NE(named(models, "gone").problem.find("is not there"), std::string::npos);
  EXPECT_NE(named(models, "bare").problem.find("no model_path"), std::string::npos);
}

TEST_F(Stores, ListAFileOnceAndNothingWhereThereIsNothing) {
  const fs::path file = write("lm/a/b/m.gguf");
  fs::create_directories(folder("g"));
  fs::create_symlink(file, folder("g") / "m.gguf");
  StorePlaces places;
  places.lm_studio = {folder("lm")};
  places.gpt4all = {folder("g"), folder("lm")};
  EXPECT_EQ(stored_models(places).size(), 1u);
  EXPECT_TRUE(stored_models({}).empty());
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_TRUE(stored_models(places, stopped.get_token()).empty());
}

TEST_F(Stores, TheCacheOfTheHubByRepositoryAndQuantization) {
  write("hub/models--a--one/snapshots/c/m-Q4_0.gguf");
  write("hub/models--a--two/snapshots/c/m-Q4_0.gguf");
  write("hub/models--a--two/snapshots/c/m-Q8_0.gguf", "GGUF larger");
  fs::create_directories(folder("hub/models--a--begun/blobs"));
  StorePlaces places;
  places.hub = folder("hub");
  const std::vector<StoredModel> models = stored_models(places);
  ASSERT_EQ(models.size(), 4u);
  EXPECT_EQ(named(models, "a/one").path, folder("hub/models--a--one"));
  EXPECT_EQ(named(models, "a/begun").path, folder("hub/models--a--begun"));
  EXPECT_EQ(named(models, "a/two:Q4_0").path, folder("hub/models--a--two/snapshots/c/m-Q4_0.gguf"));
  EXPECT_EQ(named(models, "a/two:Q8_0").path, folder("hub/models--a--two/snapshots/c/m-Q8_0.gguf"));
}

}  // namespace
}  // namespace canopy
