"""First user turns for training: openers that the target goes on from, and whole instructions from templates. The
families in HELD_OUT never go into training; evaluate can draw from them (--templates)."""

import math
import string

from errors import require

# Lines are joined; \n is a line break of the opener.
OPENERS = """
Write a Python function that |Write a short story about |Explain how |Explain why |What is the difference between |
What are the |How do I |How can I |Can you |Could you help me |Please |I need |I want to |My friend |Tell me about |
Give me |List |Describe |Summarize |Rewrite the following |Translate |Solve |Calculate |A train |If |Why |When |Who |
Compare |Create a |Design a |Imagine |Suppose |In the context of |Write an email |Write a poem about |Write code |
Implement |Fix the bug in this code:\\n|```python\\ndef |Complete the following |Classify |Edit this paragraph:\\n|
Let |Find |Prove that |Is it true that |What would happen if |Should I |Make a table of |Give step by step instructions|
Question: |Question: A |Question: How many |Problem: |Problem: Find |Problem: If |Problem: What is |Evaluate |Simplify |
Let $x$ be |How many |How much |How long |What is the probability that |What is the area of |
Complete this function:\\n\\n```python\\ndef |def |Here is the beginning of a function:\\n\\ndef |Write a program that |
Write a class |Write a function |Write a script |What does this code do?\\n\\n```python\\n|Convert |Draft |Compose |
Outline |Provide |Analyze |Identify |Discuss |Develop |Extract |Given |Read the following |Which |Where |
You are |Act as |Pretend |
How does |How do |How is |How are |Why do |Why does |Why is |Why are |What is |What does |What makes |What causes |
What happens when |What is meant by |What is the purpose of |What is the role of |Where does |Who was |Define |
Explain the difference between |Explain what |Explain the concept of |Explain in simple words |Explain to a child |
In one paragraph, explain |Describe the process of |Give an example of |Teach me |What do you know about |
Write a JavaScript function that |Write a C program that |Write an SQL query that |Write a Python class |
Write a Java method that |Write a bash script that |Write a regular expression that |In Python, how |In JavaScript, |
How can I use Python to |My code |Why does this code |Explain what this code does:\\n\\n```python\\n|Refactor |
What is the output of this code?\\n\\n```python\\n|Write a recursive function that |Write an HTML page |
Using pandas, |Write a test for |Tell me a story about |Write the beginning of a novel about |Continue this story: |
Write a dialogue between |Write a fable about |A farmer has |A baker |A car |A box |A store |Two |The sum of |
Compute |Determine |Solve the equation |What is the value of |Find the value of |Find all |Expand |Factor |
Recommend |Suggest |Give me some tips |What should I |Plan a |Name three |What are some |Make a list of |
I am planning |I have a |I just |My boss |My child |Is it |Are there |Do you think |Thank you |Hello |Hi,|
How does a |How does an |How does the |How do people |How do animals |How do birds |How do plants |
How do computers |How do scientists |How do engineers |How do we know |How are the |How is a |How was |How can a |
How does the body |How does the brain |How do companies |How do governments |How do banks |How does money |
How does light |How does water |Why do we |Why do people |Why do some |Why do animals |Why does a |Why does the |
Why is a |Why is the |Why are some |Why can |Why did |Why does water |Why does the moon |Why is it important to |
Why do companies |Why do languages |What is a |What is an |What is the |What are |What does a |What does an |
What does the |What does it mean to |What is the function of |What is the meaning of |What is the main idea of |
What is the relationship between |What is the theory of |What is the law of |What happens to |What happens inside |
What are the causes of |What are the main differences between |What are the advantages of |What makes a |
What makes the |What causes a |Explain the |Explain a |Explain how a |Explain how the |Explain why the |
Explain why some |Explain what a |Explain in detail |Explain briefly |Explain the meaning of |
Explain the importance of |Explain the effect of |Explain the theory of |Explain, with an example, |
Explain to a beginner |Explain like I am five: |Describe how |Describe the difference between |
Describe the structure of |Describe the life of |Help me understand |I do not understand |Tell me why |Tell me how |
Who invented |Where do |When did |Which of the |In simple terms, |In biology, |In physics, |In economics, |
In grammar, |In computer science, |In history, |In chemistry, |In medicine, |In geography, |In law, |In music,
""".replace("\n", "").replace("\\n", "\n").split("|")

SLOTS = {
    "name": "Anna Ben Carla David Emma Felix Grace Henry Iris Jonas Lena Marco Nora Oscar Priya Ravi Sofia Tom".split(),
    "item": "apples books pencils marbles stickers cookies tickets bottles coins flowers eggs chairs".split(),
    "n": [str(n) for n in range(2, 61)],
    "big": [str(n) for n in range(70, 990, 13)],
    "percent": [str(n) for n in range(5, 100, 5)],
    "language": ["Python", "JavaScript", "C", "Java", "Rust", "Go", "SQL", "Bash"],
    "task": ["reverses a string", "counts the vowels in a text", "checks whether a number is prime",
             "finds the largest number in a list", "removes duplicates from a list", "merges two sorted lists",
             "computes the factorial of a number", "returns the nth Fibonacci number", "checks for balanced brackets",
             "converts Celsius to Fahrenheit", "sorts a list of words by length", "counts words in a file",
             "validates an email address", "flattens a nested list", "computes the average of a list",
             "checks whether two words are anagrams", "searches a sorted list by bisection", "transposes a matrix",
             "finds the common elements of two lists", "parses a date", "rotates a list by k places",
             "returns the sum of the digits of a number", "converts a number to binary",
             "groups words by first letter"],
    "thing": ["a stack", "a queue", "a bank account", "a shopping cart", "a binary tree", "a linked list", "a timer",
              "a library of books", "a cache", "a matrix", "a student register", "a playlist"],
    "topic": ["photosynthesis", "gravity", "the water cycle", "inflation", "recursion", "machine learning", "tides",
              "the immune system", "electricity", "volcanoes", "democracy", "evolution", "the internet", "vaccines",
              "black holes", "supply and demand", "plate tectonics", "encryption", "sleep", "rainbows", "memory",
              "the French Revolution", "climate change", "hash tables", "compound interest", "DNA", "sound waves"],
    "audience": ["a child", "a beginner", "a high school student", "an expert", "my grandmother", "a busy manager"],
    "hero": ["a lost robot", "a shy dragon", "an old lighthouse keeper", "two rival bakers", "a curious cat",
             "a young astronaut", "a painter without colours", "a detective in a small village", "a talking river",
             "a violin maker", "a girl who collects maps", "the last librarian"],
    "place": ["in a desert", "on a distant moon", "in a rainy city", "under the sea", "in the mountains", "on a train",
              "in a quiet forest", "at a market", "in the future", "in a castle"],
    "goal": ["learn a language", "save money", "sleep better", "run a marathon", "write a book", "plan a garden",
             "prepare for an interview", "eat healthier", "reduce stress", "organize a small office", "cook for guests",
             "start a small business", "read more books", "care for a cat", "learn to draw", "stay focused"],
    "group": ["fruits", "countries in Europe", "programming languages", "musical instruments", "board games",
              "renewable energy sources", "famous scientists", "birds", "healthy breakfasts", "gifts for a teacher",
              "indoor plants", "outdoor activities", "historical inventions", "types of clouds", "rivers in Asia"],
}

FAMILIES = {
    "code": ["Write a {language} function that {task}.", "How would I write a {language} program that {task}?",
             "Show me {language} code that {task}, with comments.", "Write a class in {language} that models {thing}.",
             "Write unit tests for a {language} function that {task}.", "Explain a {language} function that {task}."],
    "mathematics": ["{name} has {n} {item} and buys {n2} more. Then {name} gives away {n3}. How many are left?",
                    "What is {n} times {n2} plus {n3}?", "What is {percent}% of {big}?",
                    "Solve for x: {n}x + {n2} = {big}.",
                    "A shop sells {item} for {n} dollars each. How much do {n2} cost with a discount of {percent}%?",
                    "A rectangle is {n} cm long and {n2} cm wide. What are its area and its perimeter?",
                    "{name} drives {big} km in {n} hours. What is the average speed?"],
    "explanation": ["Explain {topic} to {audience}.", "What is {topic}, and why does it matter?",
                    "How does {topic} work? Answer in a few sentences.", "Describe {topic} with an example.",
                    "What are common misunderstandings about {topic}?"],
    "story": ["Write a short story about {hero} {place}.", "Write a poem about {hero}.",
              "Begin a story with {hero} {place}.", "Write a dialogue between {hero} and {hero2}."],
    "lists": ["List {n} {group}.", "Give me five tips to {goal}.", "What do I need to {goal}? Make a list.",
              "Make a plan for one week to {goal}.", "Name some {group} and say one sentence about each."],
    "messages": ["Write a polite email to {name} to ask for help to {goal}.",
                 "Write a thank-you note to {name} for the {item}.", "Write a short speech about {topic}."],
}

HELD_OUT = {
    "code": ["Complete this {language} code so that it {task}, and say what it costs in time."],
    "mathematics": ["{name} reads {n} pages a day. After how many days are {big} pages read, if {n2} are skipped?",
                    "The sum of two numbers is {big} and their difference is {n}. Which numbers are they?"],
    "explanation": ["Summarize what is known about {topic} in one paragraph for {audience}."],
    "story": ["Retell a well-known fairy tale with {hero} {place}."],
    "lists": ["Compare three {group} in a table.", "Write a checklist for someone who wants to {goal}."],
    "messages": ["Write a product review of {item} by {name}, who wanted to {goal}."],
}


def fill(pattern, draw):
    """A pattern with each slot drawn by `draw` (random.Random); {n2} is a second draw of {n}."""
    class Slots(dict):
        def __missing__(self, key):
            return draw.choice(choices(key))
    return pattern.format_map(Slots())


def choices(slot):
    """What may stand in a slot of that name."""
    return SLOTS[slot.rstrip("23")]


def variants(pattern):
    """How many texts a pattern has."""
    return math.prod(len(choices(slot)) for _, slot, _, _ in string.Formatter().parse(pattern) if slot)


def instruction(draw, families=None):
    """(family, text) of a random pattern, every family as likely as the others."""
    families = families or FAMILIES
    family = draw.choice(sorted(families))
    return family, fill(draw.choice(families[family]), draw)


def held_out(count, draw):
    """`count` different (family, text) of each held-out family. Raises UserError where one has not so many."""
    for family, patterns in HELD_OUT.items():
        number = sum(map(variants, patterns))
        require(0 <= count <= number, f"--templates {count}: the family {family} has {number} prompts; 0 to "
                                      f"{min(sum(map(variants, some)) for some in HELD_OUT.values())} are allowed.")
    prompts = []
    for family in sorted(HELD_OUT):
        texts = set()
        while len(texts) < count:
            texts.add(fill(draw.choice(HELD_OUT[family]), draw))
        prompts += [(family, text) for text in sorted(texts)]
    return prompts
