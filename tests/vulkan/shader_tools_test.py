#!/usr/bin/env python3
"""Tests of tools/check_spirv.py and tools/compile_shader.py."""

import argparse
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import check_spirv  # noqa: E402
import compile_shader  # noqa: E402
import shared_memory  # noqa: E402

OPTIONS = None

HEAD = """
OpCapability Shader
OpCapability GroupNonUniformArithmetic
OpCapability AtomicFloat32AddEXT
OpExtension "SPV_EXT_shader_atomic_float_add"
%glsl = OpExtInstImport "GLSL.std.450"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %shared
OpExecutionMode %main LocalSize 1 1 1
"""
BODY = """
%void = OpTypeVoid
%fn = OpTypeFunction %void
%float = OpTypeFloat 32
%uint = OpTypeInt 32 0
%v2 = OpTypeVector %float 2
%two = OpConstant %float 2
%one_u = OpConstant %uint 1
%zero_u = OpConstant %uint 0
%subgroup = OpConstant %uint 3
%pair = OpConstantComposite %v2 %two %two
%ptr = OpTypePointer Workgroup %float
%shared = OpVariable %ptr Workgroup
%main = OpFunction %void None %fn
%label = OpLabel
"""
TAIL = """
OpReturn
OpFunctionEnd
"""


def assemble(code, exact=True):
    """The words of a module with these lines in its body; `%x` carries NoContraction if `exact`."""
    text = HEAD + ("OpDecorate %x NoContraction\n" if exact else "") + BODY + code + TAIL
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "module.spv"
        subprocess.run([OPTIONS.spirv_as, "--target-env", "vulkan1.3", "-o", str(module), "-"], input=text.encode(),
                       check=True)
        return check_spirv.words_of(module.read_bytes())


class CheckSpirv(unittest.TestCase):
    arithmetic = {
        "OpFAdd": "%x = OpFAdd %float %two %two",
        "OpFSub": "%x = OpFSub %float %two %two",
        "OpFMul": "%x = OpFMul %float %two %two",
        "OpFDiv": "%x = OpFDiv %float %two %two",
        "OpVectorTimesScalar": "%x = OpVectorTimesScalar %v2 %pair %two",
        "Fma": "%x = OpExtInst %float %glsl Fma %two %two %two",
    }
    forbidden = {
        "OpDot": "%x = OpDot %float %pair %pair",
        "OpGroupNonUniformFAdd": "%x = OpGroupNonUniformFAdd %float %subgroup Reduce %two",
        "OpGroupNonUniformFMul": "%x = OpGroupNonUniformFMul %float %subgroup Reduce %two",
        "OpAtomicFAddEXT": "%x = OpAtomicFAddEXT %float %shared %one_u %zero_u %two",
        "FMix": "%x = OpExtInst %float %glsl FMix %two %two %two",
        "Length": "%x = OpExtInst %float %glsl Length %pair",
    }
    allowed = (
        "%x = OpIAdd %uint %one_u %one_u",
        "%x = OpGroupNonUniformFMax %float %subgroup Reduce %two",
        "%x = OpExtInst %float %glsl Exp %two",
        "%x = OpFNegate %float %two",
    )

    def test_decorated_arithmetic_passes(self):
        for name, code in self.arithmetic.items():
            with self.subTest(name):
                self.assertEqual(check_spirv.check(assemble(code)), [])

    def test_undecorated_arithmetic_is_named(self):
        for name, code in self.arithmetic.items():
            with self.subTest(name):
                problems = check_spirv.check(assemble(code, exact=False))
                self.assertEqual([p.instruction for p in problems], [name])
                self.assertIn("NoContraction", str(problems[0]))
                self.assertGreater(problems[0].result, 0)

    def test_other_orders_are_refused_even_when_decorated(self):
        for name, code in self.forbidden.items():
            with self.subTest(name):
                self.assertEqual([p.instruction for p in check_spirv.check(assemble(code))], [name])

    def test_what_rounds_alike_passes(self):
        for code in self.allowed:
            with self.subTest(code):
                self.assertEqual(check_spirv.check(assemble(code, exact=False)), [])

    def test_every_problem_is_found(self):
        code = "\n".join(["%a = OpFAdd %float %two %two", "%x = OpFMul %float %a %a", "%b = OpFSub %float %x %a"])
        self.assertEqual([p.instruction for p in check_spirv.check(assemble(code))], ["OpFAdd", "OpFSub"])

    def test_fma_is_decorated_for_the_compiler(self):
        words = assemble(self.arithmetic["Fma"], exact=False)
        decorated = check_spirv.decorate_fma(words)
        self.assertEqual(check_spirv.check(decorated), [])
        self.assertEqual(len(decorated), len(words) + 3)
        self.assertEqual(check_spirv.decorate_fma(decorated), decorated)
        with tempfile.TemporaryDirectory() as folder:
            module = Path(folder) / "module.spv"
            module.write_bytes(b"".join(w.to_bytes(4, "little") for w in decorated))
            subprocess.run([OPTIONS.spirv_val, "--target-env", "vulkan1.3", str(module)], check=True)

    def test_damaged_modules_are_refused(self):
        words = assemble(self.arithmetic["OpFAdd"])
        for length in range(5, len(words)):
            try:
                check_spirv.check(words[:length])
            except check_spirv.Malformed:
                pass
        for data in (b"", b"\0" * 40, b"\3\2#\7" * 4):
            with self.assertRaises(check_spirv.Malformed):
                check_spirv.words_of(data)


class CompileShader(unittest.TestCase):
    exact = "layout(local_size_x = 1) in; layout(binding = 0) buffer B { float b[]; };\n" \
            "void main() { precise float y = b[0] * b[1] + FACTOR; b[2] = y; }\n"

    def compile(self, top, body, files=(), options=("--as-array",)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "with blank"
            folder.mkdir()
            (folder / "probe.comp").write_text(top + body)
            for path, text in files:
                (folder / path).write_text(text)
            command = [sys.executable, str(TOOLS / "compile_shader.py"), "--source", str(folder / "probe.comp"),
                       "--include", str(folder), "--symbol", "table_probe", "--output", str(folder / "probe.cpp"),
                       "--depfile", str(folder / "probe.d"), "--glslang", OPTIONS.glslang,
                       "--spirv-val", OPTIONS.spirv_val, *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            output = folder / "probe.cpp"
            self.embedded = (folder / "probe.spv").read_bytes() if (folder / "probe.spv").exists() else b""
            return (done.returncode, done.stderr, output.read_text() if output.exists() else "",
                    (folder / "probe.d").read_text() if output.exists() else "")

    def test_variants_multiply_and_get_their_macros(self):
        top = "#version 450\n// variants: - FACTOR=1.0; half FACTOR=0.5\n// variants: a FIRST; c SECOND=2\n"
        code, error, output, _ = self.compile(top, self.exact)
        self.assertEqual(code, 0, error)
        for name in ("probe_a", "probe_c", "probe_half_a", "probe_half_c"):
            self.assertRegex(output, rf'\{{"{name}", \{{canopy_table_probe \+ \d+, \d+\}}, false\}}')

    def test_words_are_embedded_as_a_file_or_as_numbers(self):
        top = "#version 450\n// variants: a FACTOR=1.0; b FACTOR=2.0\n"
        _, _, numbers, _ = self.compile(top, self.exact)
        self.assertEqual(self.embedded, b"")
        code, error, output, _ = self.compile(top, self.exact, options=())
        self.assertEqual(code, 0, error)
        words = [int(word, 16) for word in re.findall(r"0x([0-9a-f]{8}),", numbers)]
        self.assertEqual(self.embedded, check_spirv.bytes_of(words))
        self.assertIn(f"canopy_table_probe[{len(words)}];", output)
        self.assertRegex(output, r'\.incbin .*with blank/probe\.spv')

    def test_variants_may_be_left_out(self):
        top = "// variants: a; b\n// variants: -; half\n// without: b_half\n"
        self.assertEqual([v.name for v in compile_shader.variants_of("s", top)], ["s_a", "s_a_half", "s_b"])
        with self.assertRaises(compile_shader.ShaderError):
            compile_shader.variants_of("s", "// variants: a\n// without: b\n")

    shared_top = "#version 450\n#extension GL_KHR_memory_scope_semantics : require\n#pragma use_vulkan_memory_model\n"
    shared_body = "layout(local_size_x = 64) in; layout(binding = 0) coherent buffer B { uint b[]; };\n" \
                  "shared uint a[64];\n" \
                  "void main() { a[gl_LocalInvocationIndex] = 1u; barrier();\n" \
                  "  b[gl_GlobalInvocationID.x] = a[63u - gl_LocalInvocationIndex]; }\n"

    def test_barriers_order_shared_memory_instead_of_each_access(self):
        for pragma, in_model in ((True, True), (False, False)):
            top = self.shared_top if pragma else self.shared_top.rsplit("\n", 2)[0] + "\n"
            code, error, output, _ = self.compile(top, self.shared_body)
            self.assertEqual(code, 0, error)
            words = [int(word, 16) for word in re.findall(r"0x([0-9a-f]{8}),", output)]
            module = check_spirv.instructions(words)
            masks = [i.operands[at] for i in module for op, at in ((61, 3), (62, 2))
                     if i.opcode == op and len(i.operands) > at]
            constants = {i.operands[1]: i.operands[2] for i in module if i.opcode == 43}
            semantics = [constants[i.operands[2]] for i in module if i.opcode == 224]
            # Of shared memory neither load nor store has a scope; of the coherent buffer the store keeps its own.
            self.assertEqual(sorted(masks), [0x20, 0x20, 0x28] if in_model else [], pragma)
            self.assertEqual([s & 0x6000 for s in semantics], [0x6000 if in_model else 0])
            self.assertEqual(shared_memory.order_by_barriers(words), words)

    def test_includes_are_dependencies(self):
        top = "#version 450\n#extension GL_GOOGLE_include_directive : require\n#include \"factor.glsl\"\n"
        code, error, _, depfile = self.compile(top, self.exact, [("factor.glsl", "#define FACTOR 3.0\n")])
        self.assertEqual(code, 0, error)
        self.assertIn("with\\ blank/factor.glsl", depfile)
        self.assertIn("with\\ blank/probe.comp", depfile)

    counting = "layout(local_size_x = 64) in; layout(binding = 0) coherent buffer B { uint b[]; };\n" \
               "shared uint last;\n" \
               "void main() { b[gl_GlobalInvocationID.x] = 1u; BARRIER;\n" \
               "if (gl_LocalInvocationIndex == 0u) last = atomicAdd(b[0], 1u); BARRIER; if (last == 9u) b[1] = b[2]; }\n"

    def test_a_count_between_barriers_of_shared_memory_is_refused(self):
        top = "#version 450\n#extension GL_KHR_memory_scope_semantics : require\n"
        ordered = "controlBarrier(gl_ScopeWorkgroup, gl_ScopeDevice, gl_StorageSemanticsBuffer | " \
                  "gl_StorageSemanticsShared, gl_SemanticsAcquireRelease)"
        code, error, _, _ = self.compile(top, self.counting.replace("BARRIER", ordered))
        self.assertEqual(code, 0, error)
        for plain in ("barrier()", "memoryBarrierBuffer(); barrier()"):
            code, error, _, _ = self.compile(top, self.counting.replace("BARRIER", plain))
            self.assertEqual(code, 1)
            self.assertIn("before it does not order buffers", error)
            self.assertIn("behind it does not order buffers", error)

    def test_contraction_is_refused_with_the_line(self):
        body = self.exact.replace("precise ", "")
        code, error, output, _ = self.compile("#version 450\n// variants: one FACTOR=1.0\n", body)
        self.assertEqual(code, 1)
        self.assertEqual(output, "")
        self.assertIn("variant probe_one", error)
        self.assertRegex(error, r"OpFMul with result %\d+ at .*probe\.comp:4: it lacks the decoration NoContraction")
        self.assertIn("OpFAdd", error)

    def test_inexact_shaders_say_so(self):
        body = self.exact.replace("precise ", "")
        code, error, _, _ = self.compile("#version 450\n// inexact: a drafter may round as it likes\n#define FACTOR 1.0\n",
                                         body)
        self.assertEqual(code, 0, error)

    matrices = "layout(local_size_x = 32) in; layout(binding = 0) buffer B { float16_t b[]; };\n" \
               "layout(binding = 1) buffer C { float c[]; };\n" \
               "#define M(type, use) coopmat<type, gl_ScopeSubgroup, 8, 8, use>\n" \
               "void main() { M(float16_t, gl_MatrixUseA) x; M(float16_t, gl_MatrixUseB) y;\n" \
               "coopMatLoad(x, b, 0, 8, gl_CooperativeMatrixLayoutRowMajor);\n" \
               "coopMatLoad(y, b, 64, 8, gl_CooperativeMatrixLayoutColumnMajor);\n" \
               "M(float, gl_MatrixUseAccumulator) z = M(float, gl_MatrixUseAccumulator)(0.0);\n" \
               "z = coopMatMulAdd(x, y, z); coopMatStore(z, c, 0, 8, gl_CooperativeMatrixLayoutRowMajor); }\n"
    matrix_top = "#version 460\n#extension GL_KHR_cooperative_matrix : require\n" \
                 "#extension GL_KHR_memory_scope_semantics : require\n#extension GL_EXT_shader_16bit_storage : require\n" \
                 "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"

    def test_cooperative_matrices_are_declared_and_marked(self):
        plain = "void main() {}\n"
        body = f"#if MATRIX == 1\n{self.matrices}#else\nlayout(local_size_x = 32) in; {plain}#endif\n"
        top = self.matrix_top + "// variants: mm MATRIX=1; mv MATRIX=0\n"
        code, error, output, _ = self.compile(top + "// needs: cooperative_matrix\n", body)
        self.assertEqual(code, 0, error)
        self.assertRegex(output, r'\{"probe_mm", \{canopy_\w+ \+ 0, \d+\}, true\}')
        self.assertRegex(output, r'\{"probe_mv", \{canopy_\w+ \+ [1-9]\d*, \d+\}, false\}')

    def test_what_a_shader_needs_must_be_said_and_true(self):
        code, error, _, _ = self.compile(self.matrix_top, self.matrices)
        self.assertEqual(code, 1)
        self.assertIn("say `// needs: cooperative_matrix`", error)
        body = self.exact.replace("FACTOR", "1.0")
        code, error, _, _ = self.compile("#version 450\n// needs: cooperative_matrix\n", body)
        self.assertEqual(code, 1)
        self.assertIn("none of its variants uses them", error)
        code, error, _, _ = self.compile("#version 450\n// needs: more\n", body)
        self.assertEqual(code, 1)
        self.assertIn("`needs: more` is unknown", error)

    def test_errors_name_the_variant(self):
        code, error, _, _ = self.compile("#version 450\n// variants: bad FACTOR=nonsense\n", self.exact)
        self.assertEqual(code, 1)
        self.assertIn("variant probe_bad) does not compile", error)
        self.assertIn("nonsense", error)

    def test_malformed_variants_are_refused(self):
        for line in ("a/b X=1", "a X=(1)", "", "a X=1; a X=2"):
            with self.subTest(line):
                with self.assertRaises(compile_shader.ShaderError):
                    compile_shader.variants_of("s", f"// variants: {line}\n")

    def test_directives_end_with_the_comments(self):
        self.assertEqual(compile_shader.directives("// variants: a\nint x;\n// inexact: late\n"), [("variants", "a")])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--spirv-as", default="spirv-as")
    parser.add_argument("--glslang", default="glslangValidator")
    parser.add_argument("--spirv-val", default="spirv-val")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)
